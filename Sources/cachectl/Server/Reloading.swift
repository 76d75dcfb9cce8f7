import CachectlCore
import Larder
import LarderServer
import Locks
import SystemPackage

/// Handles SIGHUP and SIGUSR1 in a running server.
///
/// SIGUSR1 reopens the access log, for programs that rotate it. SIGHUP does the same, and reloads the certificate and
/// the key, for new connections, and the settings file: a changed budget and changed log levels apply at once; other
/// changes are reported as needing a restart. If a file cannot be read, the server reports it and keeps what it has.
struct Reloading {
    private static let logSignals = Atomic<Int>(0)
    private static let fileSignals = Atomic<Int>(0)

    private let server: any RunningServer
    /// The store in use.
    private let store: @Sendable () -> Store?
    private let levels: LogLevels
    private var source: Source?
    /// The settings file as it was at the start: of most settings that is what the server runs with.
    private let started: SettingsFile?
    private var seen = (log: 0, file: 0)

    /// The settings file as it was last read.
    struct Source: Sendable {
        let path: FilePath
        var file: SettingsFile
        /// Settings of the command line, which takes precedence.
        let fixed: Set<String>
    }

    /// - Parameter source: nil without a settings file.
    init(
        _ server: any RunningServer, _ levels: LogLevels, _ source: Source?, _ store: @escaping @Sendable () -> Store?
    ) {
        self.server = server
        self.store = store
        self.levels = levels
        self.source = source
        started = source?.file
    }

    /// Installs the handlers. Call it before the store is opened: until then, SIGHUP ends the program.
    static func listen() {
        // Initialise them now: a signal handler must not.
        _ = logSignals.load(ordering: .relaxed) + fileSignals.load(ordering: .relaxed)
        SignalHandler.install(SIGUSR1) { _ in
            Reloading.logSignals.wrappingAdd(1, ordering: .relaxed)
            SignalHandler.wake()
        }
        SignalHandler.install(SIGHUP) { _ in
            Reloading.fileSignals.wrappingAdd(1, ordering: .relaxed)
            SignalHandler.wake()
        }
    }

    /// Handles the signals since the last call.
    mutating func obey() {
        let now = (log: Self.logSignals.load(ordering: .relaxed), file: Self.fileSignals.load(ordering: .relaxed))
        guard now != seen else { return }
        let isReload = now.file != seen.file
        seen = now
        attempt("access log reopened", orElse: "the access log stays in the old file") { try server.reopenAccessLog() }
        guard isReload else { return }
        attempt("certificate reloaded", orElse: "the certificate stays as it was") { try server.reloadCertificate() }
        guard let old = source else { return }
        attempt("settings reloaded", orElse: "the settings stay as they were") {
            let new = try SettingsFile(old.path)
            try apply(new, after: old)
            source?.file = new
            return true
        }
    }

    private func apply(_ new: SettingsFile, after old: Source) throws {
        let changes = old.file.changes(to: new).filter { !old.fixed.contains($0) }
        if changes.contains("logLevel") {
            let new = try new.settings(named: "logLevel")?.server.logLevel
            (new ?? .standard).apply(to: levels)
            Output.note("the log levels are now those of the settings")
        }
        if changes.contains("budget"), let store = store() {
            if let bytes = try new.budget() {
                try store.setByteBudget(ofServer: bytes)
                Output.note("the budget is now \(Render.size(bytes))")
            } else {
                let bytes = try store.budget().bytes
                Output.note("the settings have no budget any more: it stays \(Render.size(bytes))")
            }
        }
        let due = started?.changes(to: new).filter { !old.fixed.contains($0) && !Self.immediate.contains($0) } ?? []
        if !due.isEmpty { Output.note("restart to apply the changes to: \(due.joined(separator: ", "))") }
    }

    private static let immediate: Set = ["budget", "logLevel"]

    private func attempt(_ text: String, orElse kept: String, _ body: () throws -> Bool) {
        do {
            if try body() { Output.note(text) }
        } catch {
            let message = (error as? GatewayError).map { "cachectl: \($0.message)\n" } ?? ErrorReport(error).text
            Output.complain(message)
            Output.note(kept)
        }
    }
}
