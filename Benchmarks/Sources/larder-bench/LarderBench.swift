import ArgumentParser

/// `larder-bench`: measures Larder beside other ways to keep bodies on a disk.
@main
struct LarderBench: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "larder-bench",
        abstract: "Measure Larder beside other ways to keep bodies on a disk.",
        subcommands: [
            RunCommand.self, ListCommand.self, TargetsCommand.self, StressCommand.self, TraceCommand.self,
            ProbeCommand.self,
        ])
}
