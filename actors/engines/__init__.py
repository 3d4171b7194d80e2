"""The engines `direct` and `actors`: they hold the entities of the model, and give handles to them."""
