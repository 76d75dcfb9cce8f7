import HTTPTypes

/// What the rules need to know of a request, gathered in one pass over its fields.
struct RequestFacts {
    var directives = RequestDirectives()
    var hasPreconditionForOrigin = false
    var hasIfNoneMatch = false
    var hasIfModifiedSince = false
    var hasRange = false
    var hasIfRange = false
    var hasAuthorization = false

    init(_ request: HTTPRequest, options: CachingOptions) {
        var hasCacheControl = false
        var hasPragma = false
        for field in request.headerFields {
            // The length tells nearly all names apart before any bytes are compared.
            let name = field.name.canonicalName
            switch name.utf8.count {
            case 5: if name == "range" { hasRange = true }
            case 6: if name == "pragma" { hasPragma = true }
            case 8:
                if name == "if-range" { hasIfRange = true }
                if name == "if-match" { hasPreconditionForOrigin = true }
            case 13:
                if name == "cache-control" { hasCacheControl = true }
                if name == "if-none-match" { hasIfNoneMatch = true }
                if name == "authorization" { hasAuthorization = true }
            case 17: if name == "if-modified-since" { hasIfModifiedSince = true }
            case 19: if name == "if-unmodified-since" { hasPreconditionForOrigin = true }
            default: break
            }
        }
        guard options.honorsRequestDirectives else { return }
        if hasCacheControl, let value = request.headerFields.combined(.cacheControl) {
            directives = RequestDirectives(value)
        } else if hasPragma, options.honorsPragma, let value = request.headerFields.combined(.pragma) {
            directives.noCache = DirectiveList.parse(value).contains { $0.name == Array("no-cache".utf8) }
        }
    }
}
