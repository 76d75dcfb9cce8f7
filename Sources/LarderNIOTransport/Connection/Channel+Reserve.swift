import Larder
import NIOCore

extension Channel {
    /// Throws EMFILE if the socket has a descriptor that is kept for others; see `DescriptorReserve`.
    func requireDescriptor() throws {
        let isAllowed = try pipeline.syncOperations.withUnsafeTransportIfAvailable(of: NIOBSDSocket.Handle.self) {
            DescriptorReserve.allows($0)
        }
        if isAllowed == false { throw IOError(errnoCode: EMFILE, reason: "socket") }
    }
}
