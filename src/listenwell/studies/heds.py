"""The questions of the Human Evaluation Datasheet 3.0 (Belz and Thomson, 2025) and the fields of its form.

The form at https://nlp-heds.github.io reads and writes JSON with these fields as keys, so a datasheet filled in here
can be loaded and continued there.
"""

from __future__ import annotations

from dataclasses import dataclass

PAPER = "heds-paper_and_resources"
SYSTEM = "heds-system"
DESIGN = "heds-sample_evaluators_design"
CRITERION = "heds-criteria-criterion"
ETHICS = "heds-ethics"


@dataclass(frozen=True, slots=True)
class Question:
    number: str
    text: str
    field: str
    per_criterion: bool = False


def _q(number: str, text: str, field: str) -> Question:
    return Question(number, text, field, field.startswith(CRITERION))


_PERSON = f"{PAPER}-names_and_affiliations-person_completing_this_sheet"
_CONTACT = f"{PAPER}-names_and_affiliations-contact_author"
_SAMPLE = f"{DESIGN}-sample"
_EVALUATORS = f"{DESIGN}-evaluators"
_EXPERIMENT = f"{DESIGN}-experimental_design"
_ELICITATION = f"{CRITERION}-response_elicitation"

QUESTIONS: tuple[Question, ...] = (
    _q("1.1.1", "Where can the main reference for the evaluation experiment be found?", f"{PAPER}-paper-link"),
    _q("1.1.2", "Which experiment is this form being completed for?", f"{PAPER}-paper-experiment_identification"),
    _q("1.2", "Where can the resources that were used in the experiment be found?", f"{PAPER}-resources-links"),
    _q("1.3.1.1", "Name of the person completing this sheet", f"{_PERSON}-name"),
    _q("1.3.1.2", "Affiliation of the person completing this sheet", f"{_PERSON}-affiliation"),
    _q("1.3.1.3", "Email address of the person completing this sheet", f"{_PERSON}-email"),
    _q("1.3.2.1", "Name of the contact author", f"{_CONTACT}-name"),
    _q("1.3.2.2", "Affiliation of the contact author", f"{_CONTACT}-affiliation"),
    _q("1.3.2.3", "Email address of the contact author", f"{_CONTACT}-email"),
    _q("2.1", "What type of input do the evaluated systems take?", f"{SYSTEM}-input_types"),
    _q("2.2", "What type of output do the evaluated systems generate?", f"{SYSTEM}-output_types"),
    _q("2.3", "What is the task that the evaluated systems perform?", f"{SYSTEM}-tasks"),
    _q("2.4", "What are the language(s) of the inputs accepted by the systems?", f"{SYSTEM}-input_languages"),
    _q("2.5", "What are the language(s) of the outputs produced by the systems?", f"{SYSTEM}-output_languages"),
    _q("3.1.1", "How many system outputs are evaluated per system?", f"{_SAMPLE}-number_of_system_outputs"),
    _q("3.1.2", "How are system outputs selected for inclusion?", f"{_SAMPLE}-system_output_selection"),
    _q("3.1.3.1", "What method of statistical power analysis was used?", f"{_SAMPLE}-statistical_power-method"),
    _q("3.1.3.2", "What is the statistical power of the sample?", f"{_SAMPLE}-statistical_power-value"),
    _q("3.1.3.3", "Where can the power analysis be found?", f"{_SAMPLE}-statistical_power-script"),
    _q("3.2.1", "How many evaluators are there?", f"{_EVALUATORS}-number_of_evaluators"),
    _q("3.2.2.1", "Are the evaluators experts?", f"{_EVALUATORS}-evaluators-expertise"),
    _q("3.2.2.2", "Did participants receive any form of payment?", f"{_EVALUATORS}-evaluators-payment"),
    _q("3.2.2.3", "Were participants previously known to the authors?", f"{_EVALUATORS}-evaluators-known_to_authors"),
    _q("3.2.2.4", "Were any of the researchers among the participants?", f"{_EVALUATORS}-evaluators-are_authors"),
    _q("3.2.3", "How are evaluators recruited?", f"{_EVALUATORS}-recruitment_method"),
    _q("3.2.4", "What training and/or practice are evaluators given?", f"{_EVALUATORS}-training_practice"),
    _q("3.2.5", "What other characteristics do the evaluators have?", f"{_EVALUATORS}-characteristics"),
    _q("3.3.1", "Has the experimental design been preregistered?", f"{_EXPERIMENT}-preregistered"),
    _q("3.3.2", "By what medium are responses collected?", f"{_EXPERIMENT}-collection_method"),
    _q("3.3.3.1", "What types of quality assurance methods are used?", f"{_EXPERIMENT}-quality_assurance-method"),
    _q("3.3.3.2", "What methods are used for each of those types?", f"{_EXPERIMENT}-quality_assurance-description"),
    _q("3.3.4.1", "Where can the form/interface be viewed?", f"{_EXPERIMENT}-what_evaluators_see-link"),
    _q("3.3.4.2", "What types of information are evaluators shown?", f"{_EXPERIMENT}-what_evaluators_see-description"),
    _q(
        "3.3.5",
        "How free are evaluators regarding when and how quickly to evaluate?",
        f"{_EXPERIMENT}-evaluator_freedom",
    ),
    _q("3.3.6", "Are evaluators told they can ask questions?", f"{_EXPERIMENT}-evaluators_can_ask_questions"),
    _q("3.3.7", "What are the conditions in which evaluations are done?", f"{_EXPERIMENT}-experimental_conditions"),
    _q("3.3.8", "What are the conditions at a fixed place, if any?", f"{_EXPERIMENT}-evaluators_place_of_choosing"),
    _q("4.1.1", "What type of quality is assessed?", f"{CRITERION}-criteria-quality_type"),
    _q("4.1.2", "Which aspect of system outputs is assessed?", f"{CRITERION}-criteria-output_aspect"),
    _q("4.1.3", "Is quality assessed against a frame of reference?", f"{CRITERION}-criteria-self_vs_external_frame"),
    _q("4.2.1", "Is the assessment objective or subjective?", f"{CRITERION}-evaluation_mode-objective_or_subjective"),
    _q(
        "4.2.2",
        "Are outputs assessed in absolute or relative terms?",
        f"{CRITERION}-evaluation_mode-absolute_or_relative",
    ),
    _q("4.2.3", "Is the evaluation intrinsic or extrinsic?", f"{CRITERION}-evaluation_mode-intrinsic_or_extrinsic"),
    _q("4.3.1.1", "What is the criterion called to evaluators?", f"{_ELICITATION}-qc_name-participant_criterion_name"),
    _q("4.3.1.2", "Which standardised name does that correspond to?", f"{_ELICITATION}-qc_name-mapped_criterion_name"),
    _q("4.3.2", "What definition is given to evaluators?", f"{_ELICITATION}-participant_criterion_definiiton"),
    _q("4.3.3", "What is the size of the scale?", f"{_ELICITATION}-size_of_scale"),
    _q("4.3.4", "What are the possible values of the scale?", f"{_ELICITATION}-list_or_range"),
    _q("4.3.5", "How is the scale presented to evaluators?", f"{_ELICITATION}-scale_presented_as"),
    _q("4.3.6", "If there is no rating instrument, what is the task?", f"{_ELICITATION}-task_description"),
    _q("4.3.7", "What is the verbatim question given to evaluators?", f"{_ELICITATION}-verbatim_question"),
    _q("4.3.8", "Form of response elicitation", f"{_ELICITATION}-form_of_response"),
    _q("4.3.9", "How are raw responses aggregated?", f"{_ELICITATION}-response_aggregation"),
    _q("4.3.10", "How are effect size and significance determined?", f"{_ELICITATION}-effect_size_method"),
    _q("4.3.11.1", "How was inter-annotator agreement measured?", f"{_ELICITATION}-inter_annotator-agreement"),
    _q("4.3.11.2", "What was the inter-annotator agreement score?", f"{_ELICITATION}-inter_annotator-agreement_score"),
    _q(
        "4.3.12.1",
        "How was intra-annotator agreement measured?",
        f"{_ELICITATION}-intra_annotator-intra_annotator_agreement",
    ),
    _q(
        "4.3.12.2",
        "What was the intra-annotator agreement score?",
        f"{_ELICITATION}-intra_annotator-intra_annotator_agreement_score",
    ),
    _q("5.1", "Which research ethics committee has approved the experiment?", f"{ETHICS}-review_body"),
    _q("5.2", "Does personal data occur in what is evaluated or collected?", f"{ETHICS}-personal_data"),
    _q("5.3", "Does special category information occur in it?", f"{ETHICS}-special_category_data"),
    _q("5.4", "Have any impact assessments been carried out?", f"{ETHICS}-impact_assessments"),
)

OPTIONS: dict[str, dict[int, str]] = {
    "1.2": {
        1: "1. The resources used in the experiment can be found here (enter URL(s)).",
        2: "2. No resources shared.",
    },
    "2.1": {8: "8. Text: dialogue"},
    "2.2": {6: "6. Text: multiple sentences"},
    "2.3": {10: "10. Dialogue turn generation"},
    "2.4": {41: "41. English"},
    "2.5": {41: "41. English"},
    "3.1.2": {
        1: "1. By simple automatic random selection",
        2: "2. By an automatic random process but using stratified sampling over given properties",
    },
    "3.2.2.2": {1: "1. Paid (monetary compensation)"},
    "3.3.3.1": {
        2: "2. Automatic quality checking methods are used during and/or after evaluation",
        4: "4. Evaluators are excluded if they fail quality checks (often or badly enough)",
        5: "5. Some evaluations are excluded because of failed quality checks",
    },
    "3.3.5": {5: "5. None of the above (please describe)"},
    "3.3.7": {1: "1. Evaluators carry out assessments at a place of their own choosing"},
    "4.1.1": {2: "2. Goodness"},
    "4.1.2": {1: "1. Form of output", 3: "3. Both form and content of output"},
    "4.1.3": {1: "1. Quality of output in its own right", 2: "2. Quality of output relative to the input"},
    "4.2.1": {2: "2. Subjective"},
    "4.2.2": {1: "1. Absolute", 2: "2. Relative"},
    "4.2.3": {1: "1. Intrinsic"},
    "4.3.5": {1: "1. Multiple-choice options", 5: "5. Other (please describe)"},
    "4.3.8": {2: "2. Direct quality estimation", 3: "3. Relative quality estimation (including ranking)"},
}
"""For questions with options, the options that a study may choose, by their position in the form."""

WITH_OPTIONS = frozenset({*OPTIONS, "1.1.1", "3.2.2.1", "3.2.2.3", "3.2.2.4", "3.3.1", "3.3.6", "5.2", "5.3"})
"""All questions that have options in the form; a free-text answer goes into the text field below them."""
