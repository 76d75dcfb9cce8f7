/// A file descriptor with one owner, closed when the owner goes.
final class OwnedDescriptor: Sendable {
    let raw: Int32

    init(_ raw: Int32) { self.raw = raw }

    deinit { close(raw) }
}
