"""Reports on schedules: findings, timelines, latencies, overlap, explanations, comparison."""
