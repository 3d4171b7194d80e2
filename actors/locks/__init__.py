"""The engine `threads`: several threads run the model on explicit locks, in one declared order."""
