"""How the engines start, and what this machine has for them; `inferlake.session` chooses."""
