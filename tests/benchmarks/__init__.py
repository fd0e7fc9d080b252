"""What dispatch costs: plain plum, its alternatives, frozen, and no dispatch at all."""
