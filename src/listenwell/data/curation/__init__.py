"""From raw subtitles and posts to dialogues: reading, turns, cleaning, and the pipeline that runs it all."""
