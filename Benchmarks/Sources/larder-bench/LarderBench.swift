import ArgumentParser

/// `larder-bench`: measures Larder, compared with other ways to store bodies on disk.
@main
struct LarderBench: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "larder-bench",
        abstract: "Measure Larder, compared with other ways to store bodies on disk.",
        subcommands: [
            RunCommand.self, ListCommand.self, TargetsCommand.self, StressCommand.self, SteadyCommand.self,
            LargeCommand.self, TraceCommand.self, TiersCommand.self, YardsticksCommand.self, ProbeCommand.self,
            ManyCommand.self,
            HitsCommand.self, PutAndDieCommand.self, LargeWriterCommand.self, SetWorkerCommand.self,
        ])
}
