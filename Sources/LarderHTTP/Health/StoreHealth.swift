import Larder
import Logging

/// The health of a store from the point of view of its callers: the failures of their calls, and those that the store
/// itself reports.
package struct StoreHealth: Sendable {
    package let store: Store
    let watch: StoreWatch

    init(_ store: Store, _ watch: StoreWatch) {
        self.store = store
        self.watch = watch
    }

    package init(_ store: Store, _ logger: Logger) { self.init(store, StoreWatch(logger)) }

    /// Number of times that the store could not be read or written.
    package var failures: UInt64 { watch.failures }

    /// Continues the count of the store used before.
    package func continueCounting(after failures: UInt64) { watch.add(failures) }

    /// See ``HTTPCache/storeTroubles()``.
    package func troubles() async -> [StoreTrouble] {
        var troubles = watch.troubles
        do {
            try await store.performShort { [store] in try store.checkPlace() }
        } catch {
            troubles.append(Self.trouble(.place, error))
        }
        do {
            for failure in try await store.performShort({ [store] in try store.statistics() }).failures {
                troubles.append(
                    StoreTrouble(
                        work: .upkeep, code: failure.code, message: "\(failure.work.rawValue): \(failure.message)",
                        count: failure.count))
            }
        } catch {
            if !troubles.contains(where: { $0.work == .read }) { troubles.append(Self.trouble(.read, error)) }
        }
        return troubles
    }

    private static func trouble(_ work: StoreTrouble.Work, _ error: any Error) -> StoreTrouble {
        StoreTrouble(work: work, code: (error as? LarderError)?.code, message: "\(error)", count: 1)
    }
}
