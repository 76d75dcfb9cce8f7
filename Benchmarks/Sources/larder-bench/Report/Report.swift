import Foundation

/// Everything a run of the targets gave; written as JSON for the plots.
struct Report: Codable, Sendable {
    var preset: Preset
    var machine: Machine
    var seed: UInt64
    var seconds: Double
    var rows: [TargetRow]
    var curves: Curves
}

/// What it ran on. No names of hosts or paths.
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
