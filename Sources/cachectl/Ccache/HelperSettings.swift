import CachectlCore
import Larder
import SystemPackage

/// What ccache tells its storage helper, in the environment:
/// https://github.com/ccache/ccache/blob/master/doc/remote_storage_helper_spec.md
struct HelperSettings {
    /// The socket to listen on.
    let endpoint: String
    /// The store, from a URL such as `larder:///var/cache/ccache`.
    let store: FilePath
    /// How long to wait for a client before the helper ends; nil: forever.
    let idleTimeout: Duration?
    /// Attribute `budget`.
    let budget: ByteCount?

    /// - Throws: `usage`, for what is missing or not valid.
    init(_ environment: [String: String]) throws {
        guard let endpoint = environment["CRSH_IPC_ENDPOINT"], !endpoint.isEmpty, let url = environment["CRSH_URL"]
        else {
            throw CommandError(
                .usage,
                """
                ccache starts this as its storage helper: link it as ccache-storage-larder next to ccache, and set \
                remote_storage = larder:///path/of/store
                """)
        }
        self.endpoint = endpoint
        store = try Self.path(url)
        let seconds = environment["CRSH_IDLE_TIMEOUT"] ?? "0"
        guard let seconds = Int64(seconds), (0...1 << 31).contains(seconds) else {
            throw CommandError(.usage, "CRSH_IDLE_TIMEOUT is '\(seconds)': give seconds")
        }
        idleTimeout = seconds > 0 ? .seconds(seconds) : nil
        var budget: ByteCount?
        for number in 0..<min(Int(environment["CRSH_NUM_ATTR"] ?? "0") ?? 0, 100) {
            guard environment["CRSH_ATTR_KEY_\(number)"] == "budget" else { continue }
            budget = try SizeArgument.parseBudget(environment["CRSH_ATTR_VALUE_\(number)"] ?? "")
        }
        self.budget = budget
    }

    private static func path(_ url: String) throws -> FilePath {
        let scheme = "larder:"
        var rest = Substring(url)
        guard rest.hasPrefix(scheme) else {
            throw CommandError(.usage, "'\(url)' is not the URL of a store: use larder:///path/of/store")
        }
        rest.removeFirst(scheme.count)
        if rest.hasPrefix("//") {
            rest.removeFirst(2)
            if rest.hasPrefix("localhost/") { rest.removeFirst("localhost".count) }
        }
        guard rest.hasPrefix("/") else {
            throw CommandError(
                .usage,
                "'\(url)' names no absolute path: use larder:///path/of/store, and http:// for a server on the network")
        }
        return FilePath(String(rest))
    }
}
