import SystemPackage

/// What the targets share: where stores go, how much to measure, and the large store, which takes long to fill.
final class TargetContext {
    let directory: WorkDirectory
    let preset: Preset
    let seed: UInt64
    let externals: ExternalPeers
    /// For P11; nil: there is none.
    let trace: String?
    /// What the plots show; filled on the way.
    var curves = Curves()
    private var growth: GrownStore?

    init(_ directory: WorkDirectory, _ preset: Preset, seed: UInt64, externals: ExternalPeers, trace: String?) {
        self.directory = directory
        self.preset = preset
        self.seed = seed
        self.externals = externals
        self.trace = trace
    }

    var rounds: Int { preset.rounds }

    /// Reports the progress of the run on standard error.
    func progress(_ text: String) { Progress.say(text) }

    /// Runs `body` on a peer in a separate directory, which is removed afterwards.
    func withPeer<R>(
        _ kind: PeerKind, _ bodies: Bodies, threads: Int = 1, options: PeerOptions = PeerOptions(),
        _ body: (Driver) throws -> R
    ) throws -> R {
        let path = try directory.make(kind.rawValue)
        defer { FileTree.remove(path) }
        let peer = try kind.open(path, options)
        do {
            let result = try body(Driver(peer, bodies, threads: threads))
            try peer.close()
            return result
        } catch {
            try? peer.close()
            throw error
        }
    }

    /// Puts a second into an empty peer. When the clock starts, nothing is left to write back.
    func putRate(_ kind: PeerKind, _ bodies: Bodies, count: Int, threads: Int = 1, isDurable: Bool = false) throws
        -> Double
    {
        try withPeer(kind, bodies, threads: threads) { driver in
            var driver = driver
            driver.isDurable = isDurable
            FileTree.syncAll()
            return try driver.put(0..<count).rate
        }
    }

    /// The store with `preset.manyEntries` entries, filled when first asked for.
    func grown() throws -> GrownStore {
        if let growth { return growth }
        let grown = try GrownStore.fill(self)
        growth = grown
        return grown
    }
}

/// Lines on standard error, so that the table can be piped.
enum Progress {
    static func say(_ text: String) {
        let line = text + "\n"
        line.withCString { _ = write(STDERR_FILENO, $0, strlen($0)) }
    }
}
