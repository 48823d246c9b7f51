def launch_note(spec):
    return ""
