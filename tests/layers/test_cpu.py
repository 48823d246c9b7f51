"""Settings of the process, and shapes that suit the processor."""

from listenwell.layers.cpu import STEP, spare_rows


def test_rows_come_in_few_numbers_and_few_are_added():
    whole = {rows + spare_rows(rows) for rows in range(1, 2000)}
    assert len(whole) < 50
    assert all(spare_rows(rows) < STEP for rows in range(1, 2000))
    assert all(spare_rows(rows) < STEP // 8 for rows in range(1, STEP + 1))
    assert spare_rows(2 * STEP) == spare_rows(STEP // 8) == 0
