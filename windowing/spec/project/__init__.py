"""A project: the file that says where its specs are, and for each target where tables lie."""
