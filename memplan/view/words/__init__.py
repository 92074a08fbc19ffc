"""What memplan says in a terminal, with a module for each subject.

Every function returns something for Rich to print, and prints nothing itself. Names of buffers
may hold any text: they go into `Text`, never into markup, with nothing that a terminal could
take for a command.
"""
