import ArgumentParser
struct BenchCommand: ParsableCommand {}
struct DemoCommand: ParsableCommand {}
