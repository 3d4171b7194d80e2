"""`python -m licorne` is the command `licorne`."""

from licorne.proxy.shell.command_line import main

if __name__ == "__main__":
    main()
