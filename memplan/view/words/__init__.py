"""What memplan says in a terminal, a file for each thing that it speaks of.

Every function returns something for Rich to print, and prints nothing itself. Names of buffers
are somebody's text: they go into `Text`, never into markup, with nothing that a terminal could
take for a command.
"""
