"""A quick estimate of a launch's time, from tile IR before it is lowered to lanes: to rank configurations, of which the best are
then timed in detail.

`program_work.py` says what one program computes and moves, whoever runs it; `machine_work.py` what that is on a chip's waves;
`estimated_time.py` how long the launch takes.
"""
