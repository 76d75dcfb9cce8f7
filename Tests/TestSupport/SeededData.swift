// Tests that import this module have the seeded generator, too. It is a module of its own for programs, which cannot
// link the testing library.
@_exported import SeededData
