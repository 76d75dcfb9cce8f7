import Larder
import LarderHTTP
import NIOCore

/// Bodies in files that are requested often, in the store's memory, ready to be sent.
///
/// Sending from memory is one copy into the kernel. sendfile(2) copies nothing, but a client on the same machine pays
/// for each page that it passes on.
package enum SharedBody {
    /// How the store knows them.
    package static var kind: HeldKind<ByteBuffer> { kinds.whole }
    /// How it knows them, and the gzip members that are stored for bodies.
    package static let kinds = HeldContentKinds<ByteBuffer>()

    /// A body was requested that is not held: it is from the second time on.
    static func note(_ body: Body) {
        body.holdLater(kind) { span in span.withUnsafeBytes { ByteBuffer(bytes: $0) } }
    }

    /// The gzip member of a body was.
    package static func noteMember(of body: Body) {
        body.holdMemberLater(kinds.member) { span in span.withUnsafeBytes { ByteBuffer(bytes: $0) } }
    }
}
