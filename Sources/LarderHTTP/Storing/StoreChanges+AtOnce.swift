import HTTPCaching
import Larder

/// Storing on an event loop.
extension StoreChanges {
    /// Stores a whole response under its primary key, if that takes no waiting and changes no other entry. Everything
    /// else is for a ``Storing``, and so are errors.
    /// - Parameter load: what brought it.
    /// - Returns: whether it is stored.
    func storeAtOnce(_ new: NewResponse, _ body: [UInt8], for load: RelayedLoad) -> Bool {
        let (primary, generation) = (load.primary, load.load.generation)
        let policy = context.configuration.storagePolicy
        guard new.selecting.fields.isEmpty, new.announcedRange == nil, URLVariation(of: new.head) == nil,
            !responses.packages.arePresent.load(ordering: .relaxed),
            let tags = tags.all(of: new.head, groups: new.groups, primary: primary, own: []),
            let response = new.finished(receivedBytes: Int64(body.count), isComplete: true),
            let commit = generations.beginCommit([(primary, generation)])
        else { return false }
        defer { generations.endCommit(commit) }
        let key = Key(primary)
        let options = responses.options(for: response, tags: tags, storagePolicy: policy)
        // What came meanwhile may be the newer one, have parts, or lead to variants.
        guard case .miss? = try? store.peekAtOnce(key),
            (try? store.putAtOnce(body, for: key, options)) == true
        else { return false }
        watch.succeeded(.write)
        // A purge that does not wait may have looked before it was there.
        if generations.current(primary) != generation {
            Task {
                await attempt(primary) {
                    _ = try await store.performShort { [responses] in try responses.removeAll(primary) }
                }
                // Who drains the cache waits for this, too.
                withExtendedLifetime(load) {}
            }
        }
        return true
    }
}
