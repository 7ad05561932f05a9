"""The cost report: findings, the terminal page, the picture and the HTML page."""
