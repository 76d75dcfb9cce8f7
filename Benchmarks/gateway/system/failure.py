"""The one error of these scripts: something the person at the keyboard can mend. Its text says what."""


class Failure(Exception):
    pass
