import BuildMessages
import GRPCCore

/// What this server can do.
struct CapabilitiesService: RegistrableRPCService {
    let context: CallContext

    func registerMethods<Transport>(with router: inout RPCRouter<Transport>) where Transport: ServerTransport {
        router.unary(
            "build.bazel.remote.execution.v2.Capabilities", "GetCapabilities", context, .plain, isReading: true
        ) {
            (request: Build_Bazel_Remote_Execution_V2_GetCapabilitiesRequest, metadata) in
            _ = try context.admit(metadata, .read, request.instanceName, "cas")
            return capabilities(mayWrite: context.mayWrite(metadata, request.instanceName))
        }
    }

    private func capabilities(mayWrite: Bool) -> Build_Bazel_Remote_Execution_V2_ServerCapabilities {
        .with {
            $0.cacheCapabilities.digestFunctions = [.sha256]
            $0.cacheCapabilities.actionCacheUpdateCapabilities.updateEnabled = mayWrite
            $0.cacheCapabilities.maxBatchTotalSizeBytes = Int64(Limits.batch)
            $0.cacheCapabilities.maxCasBlobSizeBytes = context.service.largestObject
            $0.cacheCapabilities.symlinkAbsolutePathStrategy = .allowed
            $0.deprecatedApiVersion.major = 2
            $0.lowApiVersion.major = 2
            $0.highApiVersion.major = 2
            $0.highApiVersion.minor = 3
        }
    }
}
