"""The only error of these scripts: something the user can fix. Its text says what."""


class Failure(Exception):
    pass
