import BuildMessages
import GRPCCore
import GRPCProtobuf
import Larder
import LarderObjects
import Logging
import SwiftProtobuf

/// What all calls share.
struct CallContext: Sendable {
    let service: ObjectService
    let uploads: SuspendedUploads

    init(_ service: ObjectService, _ uploads: SuspendedUploads) {
        self.service = service
        self.uploads = uploads
    }

    var objects: ObjectStore { service.objects }

    /// What a call may do, by its credentials.
    /// - Parameter kind: `ac` or `cas`, as in the paths over HTTP.
    /// - Throws: `RPCError`: `unauthenticated`, `permissionDenied`, `invalidArgument` for an instance name.
    func admit(_ metadata: Metadata, _ right: ObjectAccess.Right, _ instance: String, _ kind: String) throws -> Caller {
        let path: ObjectPath
        do {
            path = try ObjectPath(instance: instance, kind, ObjectStore.empty)
        } catch {
            throw RPCError(code: .invalidArgument, message: "The instance name is not valid: \(error.reason).")
        }
        let authorization = metadata[stringValues: "authorization"].first { _ in true }
        switch service.access.admission(authorization, right, at: path.text) {
        case .allowed(let user): return Caller(user: user)
        case .unauthorized: throw RPCError(code: .unauthenticated, message: "This needs credentials.")
        case .forbidden: throw RPCError(code: .permissionDenied, message: "This is not allowed here.")
        }
    }

    /// Whether a call may write, without an error.
    func mayWrite(_ metadata: Metadata, _ instance: String) -> Bool {
        (try? admit(metadata, .write, instance, "ac")) != nil
    }

    /// A digest that is asked for. Only SHA-256 is known.
    func digest(
        _ digest: Build_Bazel_Remote_Execution_V2_Digest,
        _ function: Build_Bazel_Remote_Execution_V2_DigestFunction.Value
    ) throws -> Digest {
        guard function == .unknown || function == .sha256 else {
            throw RPCError(code: .invalidArgument, message: "This server supports only SHA-256.")
        }
        do {
            return try ActionResults.digest(digest)
        } catch {
            throw RPCError(code: .invalidArgument, message: "Not valid: \(error.reason).")
        }
    }

    /// The status for an error of the store.
    /// - Parameter isReading: what cannot be read is a miss, as a build can do without it.
    func status(of error: any Error, isReading: Bool) -> RPCError {
        switch error {
        case let error as RPCError: return error
        case is CancellationError: return RPCError(code: .cancelled, message: "The call was cancelled.")
        case _ where isReading: break
        case let error as ActionResults.Invalid:
            service.logger.notice(
                "refused a result of an action", metadata: ["category": "results", "reason": "\(error.reason)"])
            return RPCError(code: .invalidArgument, message: "Not stored: \(error.reason).")
        case is ActionResults.OtherStays:
            service.logger.info("kept the first result of an action", metadata: ["category": "results"])
            return RPCError(code: .alreadyExists, message: "Not stored: \(ActionResults.OtherStays.reason).")
        case let error as LarderError:
            switch error.code {
            case .digestMismatch:
                return RPCError(
                    code: .invalidArgument, message: "The content does not match the digest that it was sent with.")
            case .lengthMismatch:
                return RPCError(
                    code: .invalidArgument, message: "The content does not match the length that it was sent with.")
            case .tooLarge: return RPCError(code: .invalidArgument, message: "The object is too large for this server.")
            case .noSpace, .mapFull:
                objects.counters.uploadsWithoutRoom.add(1, ordering: .relaxed)
                service.logger.warning(
                    "no room for an upload: running builds need the whole budget, or the disk is full",
                    metadata: ["category": "storing", "error": "\(error)"])
                return RPCError(
                    code: .resourceExhausted, message: "No space left: running builds need everything in the budget.")
            default: break
            }
        default: break
        }
        service.logger.error(
            isReading ? "cannot read an object" : "cannot store an object",
            metadata: ["category": isReading ? "reading" : "storing", "error": "\(error)"])
        if isReading { return RPCError(code: .notFound, message: "There is no such object.") }
        return RPCError(code: .internalError, message: "The object cannot be stored.")
    }
}

/// Who calls, and may.
struct Caller: Sendable {
    /// Nil without credentials.
    let user: String?

    var options: PutOptions { .written(by: user) }
}

extension RPCRouter {
    /// Registers a call with one message in each direction.
    mutating func unary<Input: Message, Output: Message>(
        _ service: String, _ method: String, _ context: CallContext, _ shape: MessageShape, isReading: Bool,
        _ body: @escaping @Sendable (Input, Metadata) async throws -> Output
    ) {
        registerHandler(
            forMethod: MethodDescriptor(fullyQualifiedService: service, method: method),
            deserializer: ShapedDeserializer<Input>(shape), serializer: ProtobufSerializer<Output>()
        ) { request, _ in
            do {
                let request = try await ServerRequest(stream: request)
                let output = try await body(request.message, request.metadata)
                return StreamingServerResponse(single: ServerResponse(message: output))
            } catch {
                throw context.status(of: error, isReading: isReading)
            }
        }
    }
}

/// Decodes what has the shape that it should have.
struct ShapedDeserializer<Content: Message>: MessageDeserializer {
    private let shape: MessageShape

    init(_ shape: MessageShape) { self.shape = shape }

    func deserialize<Bytes: GRPCContiguousBytes>(_ bytes: Bytes) throws -> Content {
        guard bytes.withUnsafeBytes({ shape.fits($0) }) else {
            throw RPCError(code: .invalidArgument, message: "The message is not a \(Content.protoMessageName).")
        }
        return try ProtobufDeserializer<Content>().deserialize(bytes)
    }
}
