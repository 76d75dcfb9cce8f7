/// The options of a run.
struct Options {
    /// The path of the program.
    var cachectl = ""
    /// Seconds that each attack lasts. Default: 10.
    var seconds = 10
    /// Connections and requests in percent of those in the reviews. Default: 100.
    var scale = 100
    /// The limit of the gateway's `--memory`, in MiB. Default: 64.
    var memory = 64
    /// Leaves the directory where it is.
    var keeps = false
    /// Text that the names of the attacks have in them. Default: nil, all attacks.
    var only: String?

    init?(_ arguments: [String]) {
        var rest = arguments[...]
        guard let path = rest.popFirst(), !path.hasPrefix("-") else { return nil }
        cachectl = path
        while let flag = rest.popFirst() {
            if flag == "--keep" {
                keeps = true
                continue
            }
            guard let text = rest.popFirst() else { return nil }
            if flag == "--only" {
                only = text
                continue
            }
            guard let number = Int(text), number > 0 else { return nil }
            switch flag {
            case "--seconds": seconds = number
            case "--scale": scale = number
            case "--memory": memory = number
            default: return nil
            }
        }
    }

    /// This many of the reviews' connections or requests, at least one.
    func scaled(_ count: Int) -> Int { max(1, count * scale / 100) }
}
