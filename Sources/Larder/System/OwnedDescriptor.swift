/// A file descriptor with one owner, which closes it when it is released.
final class OwnedDescriptor: Sendable {
    let raw: Int32

    init(_ raw: Int32) { self.raw = raw }

    /// In the place of one that is closed: every call with it fails with EBADF.
    static let none = OwnedDescriptor(-1)

    deinit { if raw >= 0 { close(raw) } }
}
