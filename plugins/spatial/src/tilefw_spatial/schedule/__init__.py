"""Stream programs to schedules: memory for arrays, cycles for every burst, and an exact count of cycles."""

from tilefw_spatial.schedule.demand import DemandedIssue
from tilefw_spatial.schedule.node import schedule_node
from tilefw_spatial.schedule.scheduler import TRIES, ChipSchedule, Try, last_event, schedule

__all__ = ["TRIES", "ChipSchedule", "DemandedIssue", "Try", "last_event", "schedule", "schedule_node"]
