import ArgumentParser

/// `list`: the names of workloads and peers.
struct ListCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "list", abstract: "List the workloads and the peers.")

    func run() {
        print("Workloads")
        for workload in Workloads.all { print("  \(padded(workload.name))\(workload.question)") }
        print("\nPeers")
        for kind in PeerKind.allCases { print("  \(padded(kind.rawValue))\(kind.summary)") }
        print("\nSizes\n  100 B ... 256 MiB, as 100, 16KiB or 1MiB")
        print("  \(padded("web"))lognormal, median 8 KB, 100 B ... 1 MiB")
        print("  \(padded("wide"))even over the logarithm, 100 B ... 1 MiB")
    }

    private func padded(_ name: String) -> String {
        name + String(repeating: " ", count: max(1, 16 - name.count))
    }
}
