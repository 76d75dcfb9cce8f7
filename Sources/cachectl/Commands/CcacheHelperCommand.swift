import ArgumentParser
import CachectlCore
import Larder

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// `ccache-helper`: a store as the remote storage of ccache on this machine.
struct CcacheHelperCommand: ParsableCommand {
    /// The name under which ccache looks for it.
    static let programName = "ccache-storage-larder"

    static let configuration = CommandConfiguration(
        commandName: "ccache-helper",
        abstract: "Serve ccache from a store, as its storage helper.",
        discussion: """
            ccache 4.13 or later starts it by itself: link cachectl as ccache-storage-larder where ccache looks for \
            helpers (next to ccache, or in PATH), and set remote_storage = larder:///path/of/store in ccache.conf. All \
            ccache processes share one helper, and other programs may use the store at the same time. The attribute \
            'budget' sets the byte budget of the store; without one it is 80 % of the free disk space. ccache passes \
            its settings in the environment (CRSH_IPC_ENDPOINT, CRSH_URL, CRSH_IDLE_TIMEOUT).
            """)

    func run() throws {
        Interruption.listen()
        let settings = try HelperSettings(ProcessInfo.processInfo.environment)
        var opening = Configuration()
        opening.encryption = try KeySource.key(file: nil)
        // It has a budget in a moment.
        opening.logger.logLevel = .warning
        let store = try Store(at: settings.store, opening)
        do {
            if let budget = settings.budget { try store.setByteBudget(ofServer: budget) }
            _ = try DefaultBudget.set(in: store, unless: settings.budget)
            try Blocking.untilInterrupted { try await HelperServer(store).run(settings) }
        } catch {
            try? store.close()
            throw error
        }
        try store.close()
    }
}
