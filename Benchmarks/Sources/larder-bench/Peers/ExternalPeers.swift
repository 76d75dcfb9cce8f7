import Foundation
import SystemPackage

/// Peers written in other languages. They run as separate processes with their own timed loops.
struct ExternalPeers: Sendable {
    /// A Python that has diskcache; nil: there is none.
    var python: String?
    /// A Node.
    var node: String?
    /// The directory of cacache, as npm includes it; nil: there is none.
    var cacache: String?
    /// The directory of `diskcache_peer.py` and `cacache_peer.mjs`.
    var scripts: String?

    /// What a peer reports.
    struct Answer: Codable, Sendable {
        var put: Double
        var get: Double
        var version: String
    }

    /// A peer that can be run here.
    struct Runnable: Sendable {
        let name: String
        let run: @Sendable (FilePath, Int, Int) throws -> Answer
    }

    /// The peers that can be run, and why the others cannot.
    var available: (peers: [Runnable], missing: [String]) {
        var peers: [Runnable] = []
        var missing: [String] = []
        if let python, let scripts {
            peers.append(
                Runnable(name: "Python diskcache") { path, size, count in
                    try Self.decode(
                        Subprocess.run(python, ["\(scripts)/diskcache_peer.py", path.string, "\(size)", "\(count)"]))
                })
        } else {
            missing.append("Python diskcache: no Python that has it was given (--python)")
        }
        if let node, let cacache, let scripts {
            peers.append(
                Runnable(name: "npm cacache") { path, size, count in
                    try Self.decode(
                        Subprocess.run(
                            node, ["\(scripts)/cacache_peer.mjs", cacache, path.string, "\(size)", "\(count)"]))
                })
        } else {
            missing.append("npm cacache: no node and npm were given (--node, --cacache)")
        }
        return (peers, missing)
    }

    private static func decode(_ data: Data) throws -> Answer {
        do {
            return try JSONDecoder().decode(Answer.self, from: data)
        } catch {
            throw BenchError(
                "a peer printed something other than its rates: \(String(decoding: data.prefix(200), as: UTF8.self))")
        }
    }
}
