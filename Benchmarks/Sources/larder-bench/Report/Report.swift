import Foundation

/// All results of a run of the targets; written as JSON for the plots.
struct Report: Codable, Sendable {
    var preset: Preset
    var machine: Machine
    var seed: UInt64
    var seconds: Double
    var rows: [TargetRow]
    var curves: Curves
}

/// The machine it ran on, without names of hosts or paths.
struct Machine: Codable, Sendable {
    var processor: String
    var cores: Int
    var memoryGiB: Double
    var kernel: String
    var fileSystem: String
    /// Load average of the minute before the run: more than 0.5 on a machine of two cores and the figures are noise.
    var load: Double
    /// Given by the script: commit, Swift, versions of peers.
    var notes: [String]
}
