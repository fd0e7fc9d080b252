thing = "thing"
