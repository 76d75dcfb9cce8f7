import HTTPTypes
import LarderHTTP
import LarderServer

/// PURGE: taking responses out of the store.
extension CacheService {
    /// Whether the client may, and what it asks for.
    func purge(_ request: HTTPRequest, isLoopback: Bool) -> ServiceDecision {
        guard (isLoopback && configuration.purging.allowsLoopback) || hasToken(request) else {
            return .own(OwnAnswer(403, "PURGE is not allowed from here."))
        }
        guard let authority = request.authority, !authority.isEmpty else {
            return .own(OwnAnswer(400, "The request names no host."))
        }
        let base = "\(request.scheme ?? "http")://\(authority)"
        if let fault = Self.fault(ofCriteria: request) { return .own(OwnAnswer(400, fault)) }
        if let prefix = request.headerFields[.purgePrefix] {
            // A scheme is written in any case (RFC 3986 section 3.1).
            let scheme = prefix.prefix { $0 != ":" }.lowercased()
            let isURL = ["http", "https"].contains(scheme) && prefix.dropFirst(scheme.count).hasPrefix("://")
            guard isURL || prefix.hasPrefix("/") else {
                return .own(OwnAnswer(400, "Purge-Prefix must be a URL or a path."))
            }
            return removal(.prefix(isURL ? prefix : base + prefix))
        }
        if let group = request.headerFields[.purgeGroup] {
            return group.isEmpty
                ? .own(OwnAnswer(400, "Purge-Group is empty.")) : removal(.group(group, origin: base))
        }
        if let tags = request.headerFields[.purgeTag] {
            let list = tags.split(whereSeparator: { $0 == "," || $0 == " " || $0 == "\t" }).map(String.init)
            return list.isEmpty ? .own(OwnAnswer(400, "Purge-Tag is empty.")) : removal(.tags(list))
        }
        return removal(.url(base + (request.path ?? "/")))
    }

    /// What is wrong with the fields that say what to remove: a purge that went by some of them would remove more than
    /// was asked for.
    private static func fault(ofCriteria request: HTTPRequest) -> String? {
        let criteria = request.headerFields.filter { $0.name.canonicalName.hasPrefix("purge-") }.map(\.name)
        let known: Set<HTTPField.Name> = [.purgePrefix, .purgeGroup, .purgeTag]
        if let unknown = criteria.first(where: { !known.contains($0) }) { return "\(unknown) is not known." }
        if Set(criteria).count > 1 { return "Give one of Purge-Prefix, Purge-Group and Purge-Tag." }
        if criteria.count > 1, criteria[0] != .purgeTag { return "\(criteria[0]) is given twice." }
        return nil
    }

    private func hasToken(_ request: HTTPRequest) -> Bool {
        guard let token = configuration.purging.token, !token.isEmpty,
            let value = request.headerFields[.authorization], value.lowercased().hasPrefix("bearer ")
        else { return false }
        // The time depends on the lengths alone.
        let given = Array(value.dropFirst("bearer ".count).utf8)
        let expected = Array(token.utf8)
        guard given.count == expected.count else { return false }
        return zip(given, expected).reduce(0) { $0 | ($1.0 ^ $1.1) } == 0
    }

    private enum PurgeOrder: Sendable {
        case url(String)
        case prefix(String)
        case tags([String])
        case group(String, origin: String)
    }

    /// It may wait for the disk.
    private func removal(_ order: PurgeOrder) -> ServiceDecision {
        .later(ServiceWork(isLimited: false) { _, _ in ServiceAnswer(await self.perform(order)) })
    }

    private func perform(_ order: PurgeOrder) async -> OwnAnswer {
        do {
            var count = 0
            switch order {
            case .url(let url): count = try await cache.purge(url)
            case .prefix(let prefix): count = try await cache.purge(prefix: prefix)
            case .group(let group, let origin): count = try await cache.purge(group: group, origin: origin)
            case .tags(let tags): for tag in tags { count += try await cache.purge(tag: tag) }
            }
            logger.info(
                "purged", metadata: ["category": "purging", "order": "\(order)", "removed": "\(count)"])
            return OwnAnswer(200, "{\"removed\": \(count)}", contentType: "application/json")
        } catch let error as FetchError {
            return Self.answer(to: error)
        } catch {
            logger.error("cannot purge", metadata: ["category": "purging", "error": "\(error)"])
            return OwnAnswer(500, "The store cannot be changed.")
        }
    }
}

extension HTTPField.Name {
    fileprivate static let purgePrefix = HTTPField.Name("Purge-Prefix")!
    fileprivate static let purgeGroup = HTTPField.Name("Purge-Group")!
    fileprivate static let purgeTag = HTTPField.Name("Purge-Tag")!
}
