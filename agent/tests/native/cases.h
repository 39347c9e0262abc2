/* One line for each test; native.rs has the same ones. */
CASE (registers_are_kept)
CASE (records_hold_arguments_and_results)
CASE (a_tail_call_keeps_the_slot)
CASE (a_lap_ends_and_the_next_begins)
CASE (a_full_ring_drops_and_counts)
CASE (a_full_ring_blocks)
