import CachectlCore
import Larder
import LarderGateway
import Synchronization
import SystemPackage

/// SIGHUP and SIGUSR1: what a running gateway reads again.
///
/// SIGUSR1 opens the access log again, for a program that rotates it. SIGHUP does that, reads the certificate and the key
/// again, for connections to come, and the file of settings: a changed budget holds at once, of others it says that they wait
/// for a restart. What cannot be read is told, and the gateway goes on with what it has.
struct Reloading {
    private static let logSignals = Atomic<Int>(0)
    private static let fileSignals = Atomic<Int>(0)

    private let gateway: Gateway
    private let keeper: StoreKeeper
    private var source: Source?
    private var seen = (log: 0, file: 0)

    /// The file of settings as it was read last.
    struct Source: Sendable {
        let path: FilePath
        var file: SettingsFile
        /// False where the command line has a budget, which wins.
        let setsBudget: Bool
    }

    /// - Parameter source: nil where all settings are flags.
    init(_ gateway: Gateway, _ keeper: StoreKeeper, _ source: Source?) {
        self.gateway = gateway
        self.keeper = keeper
        self.source = source
    }

    /// Starts to listen: before the store is opened, so that no signal ends the program in between.
    static func listen() {
        // Made now: the handlers must not be the first to touch them.
        _ = logSignals.load(ordering: .relaxed) + fileSignals.load(ordering: .relaxed)
        SignalHandler.install(SIGUSR1) { _ in Reloading.logSignals.wrappingAdd(1, ordering: .relaxed) }
        SignalHandler.install(SIGHUP) { _ in Reloading.fileSignals.wrappingAdd(1, ordering: .relaxed) }
    }

    /// Does what signals since the last call asked for.
    mutating func obey() {
        let now = (log: Self.logSignals.load(ordering: .relaxed), file: Self.fileSignals.load(ordering: .relaxed))
        guard now != seen else { return }
        let isReload = now.file != seen.file
        seen = now
        attempt("the access log was opened again") { try gateway.reopenAccessLog() }
        guard isReload else { return }
        attempt("the certificate was read again") { try gateway.reloadCertificate() }
        guard let old = source else { return }
        attempt("the settings were read again") {
            let new = try SettingsFile(old.path)
            try apply(new, after: old)
            source?.file = new
            return true
        }
    }

    private func apply(_ new: SettingsFile, after old: Source) throws {
        var changes = old.file.changes(to: new)
        if !old.setsBudget { changes.removeAll { $0 == "budget" } }
        if changes.contains("budget"), let bytes = try new.budget() {
            try keeper.store?.setByteBudget(bytes)
            Output.note("the budget is \(Render.size(bytes)) now")
            changes.removeAll { $0 == "budget" }
        }
        if !changes.isEmpty { Output.note("changed and in force after a restart: \(changes.joined(separator: ", "))") }
    }

    private func attempt(_ text: String, _ body: () throws -> Bool) {
        do {
            if try body() { Output.note(text) }
        } catch {
            Output.complain(ErrorReport(error).text)
        }
    }
}
