import Larder
import NIOCore

extension Channel {
    /// False if the socket has a descriptor that is kept for others; see `DescriptorReserve`. On its event loop.
    var hasDescriptor: Bool {
        let isAllowed = try? pipeline.syncOperations.withUnsafeTransportIfAvailable(of: NIOBSDSocket.Handle.self) {
            DescriptorReserve.allows($0)
        }
        return isAllowed ?? true
    }
}
