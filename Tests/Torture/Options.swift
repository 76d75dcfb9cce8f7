import Foundation
import SeededData

/// The options of a run.
struct Options: Sendable {
    /// How long to run; nil: until the cycles are done.
    var minutes: Double?
    /// True if the time was given.
    var isTimed = false
    /// How many cycles to run; nil: until the time is over.
    var cycles: Int?
    var seed = UInt64.random(in: 0..<1_000_000)
    /// Workers in each cycle.
    var processes: Int?
    /// Stores worked on at the same time.
    var lanes = 2
    /// Where the stores are created.
    var directory: String
    /// Keeps the stores of a run without violations, too.
    var keepsStores = false
    /// Power loss: as on a disk that confirms syncs without making them. Has to find violations.
    var ignoresSyncs = false
    /// Power loss: below real file systems.
    var isBelowFileSystems = false
    /// The file systems to run on; `nil`: all that can be made on this machine.
    var fileSystems: [String]?

    static let usage =
        "[--minutes N] [--cycles N] [--seed N] [--processes N] [--lanes N] [--store DIR] [--keep] [--ignore-syncs] [--blocks] [--fs NAME,...]"

    init?(_ arguments: [String]) {
        directory =
            access("/dev/shm", W_OK) == 0 ? "/dev/shm" : ProcessInfo.processInfo.environment["TMPDIR"] ?? "/tmp"
        var rest = arguments[...]
        while let name = rest.popFirst() {
            if name == "--ignore-syncs" {
                ignoresSyncs = true
                continue
            }
            if name == "--blocks" {
                isBelowFileSystems = true
                continue
            }
            if name == "--keep" {
                keepsStores = true
                continue
            }
            guard let value = rest.popFirst() else { return nil }
            switch name {
            case "--minutes":
                minutes = Double(value)
                isTimed = true
            case "--cycles": cycles = Int(value)
            case "--seed": UInt64(value).map { seed = $0 }
            case "--processes": processes = Int(value)
            case "--lanes": lanes = max(1, Int(value) ?? 0)
            case "--store": directory = value
            case "--fs": fileSystems = value.split(separator: ",").map(String.init)
            default: return nil
            }
        }
        if minutes == nil, cycles == nil { minutes = isBelowFileSystems ? 1 : 2 }
    }

    /// A new directory for this run.
    func makeDirectory() throws -> String {
        // In its own namespace this process is number 1, as is that of another run.
        let number =
            ProcessInfo.processInfo.environment["LARDER_TORTURE_NAMESPACE"]
            ?? "\(ProcessInfo.processInfo.processIdentifier)"
        let path = directory + "/larder-torture-\(number)"
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
        return path
    }

    /// The moment at which a run ends.
    var deadline: Date { Date().addingTimeInterval((minutes ?? 1e6) * 60) }
}

extension SeededGenerator {
    /// True in one of `n` cases.
    mutating func oneIn(_ n: Int) -> Bool { Int.random(in: 0..<n, using: &self) == 0 }
}
