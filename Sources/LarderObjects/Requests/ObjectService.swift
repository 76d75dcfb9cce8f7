import HTTPTypes
import Larder
import LarderHTTP
import LarderServer
import Locks
import Logging

/// Answers the requests of build tools.
///
/// A build continues whatever the server has: what cannot be read is a miss (404), and is logged.
package struct ObjectService: HTTPService {
    private let current: CurrentObjects
    package let access: ObjectAccess
    package let logger: Logger
    /// In bytes. Over HTTP the connections see to it.
    package let largestObject: Int64

    init(_ objects: ObjectStore, _ health: StoreHealth, _ configuration: ObjectServerConfiguration) {
        current = CurrentObjects(objects, health)
        access = configuration.access
        logger = configuration.connections.logger
        largestObject = configuration.connections.limits.bodyBytes
    }

    /// Those of the store in use: another takes its place where it had to be opened again.
    package var objects: ObjectStore { current.state.withLock { $0.objects } }
    package var health: StoreHealth { current.state.withLock { $0.health } }

    /// Continues with a store that was opened again.
    func use(_ health: StoreHealth) {
        current.state.withLock { $0 = ($0.objects.over(health.store), health) }
    }

    private final class CurrentObjects: Sendable {
        let state: Mutex<(objects: ObjectStore, health: StoreHealth)>

        init(_ objects: ObjectStore, _ health: StoreHealth) { state = Mutex((objects, health)) }
    }

    package var metrics: [ServiceMetric] {
        let counters = objects.counters
        return [
            ServiceMetric(
                "larder_objects_hits_total", "Objects that were found.", counters.hits.load(ordering: .relaxed)),
            ServiceMetric(
                "larder_objects_misses_total", "Objects that were not found.", counters.misses.load(ordering: .relaxed)),
            ServiceMetric(
                "larder_objects_incomplete_results_total", "Misses because a blob of the action result was missing.",
                counters.incompleteResults.load(ordering: .relaxed)),
            ServiceMetric(
                "larder_objects_uploads_total", "Objects that were stored.",
                counters.uploads.load(ordering: .relaxed)),
            ServiceMetric(
                "larder_objects_uploads_without_room_total", "Uploads rejected for lack of space.",
                counters.uploadsWithoutRoom.load(ordering: .relaxed)),
        ]
    }

    package func decide(_ request: ServiceRequest) -> ServiceDecision {
        let path: ObjectPath
        do throws(ObjectName.Invalid) {
            path = try ObjectPath(request.head.path ?? "/")
        } catch {
            return .answer(ServiceAnswer(400, text: "The path is not valid: \(error.reason)."))
        }
        // Browsers say from which page a request comes; build tools do not. A page must not use what only this machine
        // may.
        if access.users.isEmpty, request.head.method != .get, request.head.headerFields[.origin] != nil {
            return .answer(ServiceAnswer(403, text: "Requests from web pages are not allowed."))
        }
        let right: ObjectAccess.Right = Self.isReading(request.head.method, path.name) ? .read : .write
        switch access.admission(request.head.headerFields[.authorization], right, at: path.text) {
        case .allowed(let user):
            return answer(
                Call(service: self, objects: objects, request: request, path: path, user: user))
        case .unauthorized:
            let fields: HTTPFields = [.wwwAuthenticate: "Basic realm=\"larder\", charset=\"UTF-8\""]
            return .answer(refusal(401, "This needs credentials.", "unauthorized", fields, path.name))
        case .forbidden: return .answer(refusal(403, "This is not allowed here.", "forbidden", [:], path.name))
        }
    }

    /// Turborepo reads the reason from JSON.
    private func refusal(
        _ status: Int, _ text: String, _ code: String, _ fields: HTTPFields, _ name: ObjectName
    ) -> ServiceAnswer {
        switch name {
        case .artifact, .artifacts:
            var fields = fields
            fields[.contentType] = "application/json"
            let json = "{\"error\":{\"code\":\"\(code)\",\"message\":\"\(text)\"}}"
            return ServiceAnswer(status, fields, body: ResponseBody([.bytes(Array(json.utf8))]))
        default: return ServiceAnswer(status, text: text, fields)
        }
    }

    package func withPlainHit(_ request: PlainRequest, _ body: (ServiceHit) -> Void) -> Key? {
        guard access.anonymous >= .read, !request.hasCredentials, request.question.isUnconditional,
            let name = ObjectPath.plainBlob(request.target)
        else { return nil }
        let objects = objects
        // What fails is asked for again the long way, which tells of it.
        if (try? objects.withPlainBlob(name, body)) == true { objects.counters.hits.add(1, ordering: .relaxed) }
        return nil
    }

    private static func isReading(_ method: HTTPRequest.Method, _ name: ObjectName) -> Bool {
        switch method {
        case .get, .head, .options: true
        // What Turborepo asks and reports changes nothing.
        case .post: if case .artifacts = name { true } else { false }
        default: method.rawValue == "PROPFIND"
        }
    }

    private func answer(_ call: Call) -> ServiceDecision {
        switch (call.path.name, call.request.head.method) {
        case (.artifact, .options), (.artifacts, .options):
            // With `--preflight`, Turborepo sends its token only if this allows it.
            .answer(
                ServiceAnswer(
                    204,
                    [
                        .allow: Self.methods, .accessControlAllowMethods: "GET, HEAD, PUT, POST, OPTIONS",
                        .accessControlAllowHeaders: Self.turborepoFields,
                    ]))
        case (.status, .get), (.status, .head): .work { _ in await call.status() }
        case (.artifacts(let what), _): call.artifacts(what)
        case (_, .get), (_, .head): call.read()
        case (_, .put): call.write()
        case (_, .options): .answer(ServiceAnswer(204, [.allow: Self.methods, .dav: "1"]))
        case (.file, .delete), (.record, .delete), (.artifact, .delete): call.remove()
        case (let name, let method):
            switch method.rawValue {
            case "PROPFIND": .work { _ in await call.list() }
            // A directory is there when something is in it, and does no harm without.
            case "MKCOL": .answer(ServiceAnswer(name.isCollectionOrFile ? 201 : 405))
            default: .answer(ServiceAnswer(405, text: "This method is not allowed here.", [.allow: Self.methods]))
            }
        }
    }

    private static let turborepoFields =
        "Authorization, Content-Type, User-Agent, x-artifact-client-ci, x-artifact-client-interactive, "
        + "x-artifact-duration, x-artifact-tag"
    private static let methods = "GET, HEAD, PUT, DELETE, OPTIONS, MKCOL, PROPFIND"
}

extension ObjectName {
    fileprivate var isCollectionOrFile: Bool {
        switch self {
        case .collection, .file: true
        default: false
        }
    }
}

extension PutOptions {
    /// Who wrote an object is kept with it, so that what one user wrote can be listed and removed.
    package static func written(by user: String?) -> PutOptions {
        var options = PutOptions()
        if let user { options.tags = ["user:" + user.prefix(150)] }
        return options
    }
}

/// A request that may do what it asks.
struct Call: Sendable {
    let service: ObjectService
    let objects: ObjectStore
    let request: ServiceRequest
    let path: ObjectPath
    /// In whose name.
    let user: String?

    var options: PutOptions { .written(by: user) }

    /// The answer to an upload that failed.
    func answer(to error: any Error) -> ServiceAnswer {
        switch error {
        case let error as ObjectStore.ContentTooLong:
            return ServiceAnswer(413, text: "The content has more than \(error.limit) bytes.")
        case let error as ActionResults.Invalid:
            service.logger.notice(
                "refused a result of an action",
                metadata: ["category": "results", "path": "\(path.text)", "reason": "\(error.reason)"])
            return ServiceAnswer(400, text: "Not stored: \(error.reason).")
        case is ActionResults.OtherStays:
            service.logger.info(
                "kept the first result of an action", metadata: ["category": "results", "path": "\(path.text)"])
            return ServiceAnswer(409, text: "Not stored: \(ActionResults.OtherStays.reason).")
        case let error as LarderError:
            switch error.code {
            case .digestMismatch: return ServiceAnswer(400, text: "The content does not have the digest in the path.")
            case .lengthMismatch: return ServiceAnswer(400, text: "The content does not have the declared length.")
            case .tooLarge: return ServiceAnswer(413, text: "The object is too large for this server.")
            case .noSpace, .mapFull:
                objects.counters.uploadsWithoutRoom.add(1, ordering: .relaxed)
                service.logger.warning(
                    "no room for an upload: running builds need the whole budget, or the disk is full",
                    metadata: ["category": "storing", "path": "\(path.text)", "error": "\(error)"])
                return ServiceAnswer(507, text: "No space left: running builds need everything in the budget.")
            default: break
            }
        default: break
        }
        // The client has left; it gets no answer.
        if error is CancellationError || error is BodyInlet.Cut { return ServiceAnswer(400) }
        service.logger.error(
            "cannot store an object", metadata: ["category": "storing", "path": "\(path.text)", "error": "\(error)"])
        return ServiceAnswer(500, text: "The object cannot be stored.")
    }

    /// The answer where an object cannot be read: a miss, as a build can do without it.
    func miss(after error: any Error) -> ServiceAnswer {
        if !(error is CancellationError) {
            service.logger.error(
                "cannot read an object", metadata: ["category": "reading", "path": "\(path.text)", "error": "\(error)"])
        }
        return miss
    }

    var miss: ServiceAnswer {
        objects.counters.misses.add(1, ordering: .relaxed)
        return ServiceAnswer(404, text: "There is no such object.")
    }
}
