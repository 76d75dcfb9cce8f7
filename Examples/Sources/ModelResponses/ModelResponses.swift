import Larder
import Recipes

/// Answers of a language model by the digest of everything that they depend on.
struct Answers: Sendable {
    let store: Store
    let model: Model
    /// For how long an answer is fresh. A stale one is still returned, and asked for again in the background.
    let freshFor: Duration

    func answer(to prompt: String, temperature: Double = 0) async throws -> String? {
        let question = "\(model.name)\n\(temperature)\n\(prompt)"
        let key = Key("answer:" + Digest.of(Array(question.utf8)).hexadecimal)
        let options = ReadThroughOptions(others: .wait(.seconds(120)), staleFor: .seconds(86_400))
        let entry = try await store.value(for: key, options) { [model, freshFor] _ in
            // A refusal is an answer, too: it need not be paid for again for ten minutes.
            guard let answer = await model.complete(prompt) else { return .nothing(for: .seconds(600)) }
            return Computed(
                Array(answer.utf8), PutOptions(lifetime: .duration(freshFor), tags: ["model:" + model.name]))
        }
        guard let entry else { return nil }
        return try await String(decoding: entry.body.bytes(), as: UTF8.self)
    }
}

/// Stands for a model: slow, expensive, and sometimes it refuses.
actor Model {
    let name = "small-1"
    private(set) var calls = 0
    private var waiting: [(count: Int, CheckedContinuation<Void, Never>)] = []

    func complete(_ prompt: String) async -> String? {
        calls += 1
        for (count, continuation) in waiting where count <= calls { continuation.resume() }
        waiting.removeAll { $0.count <= calls }
        return prompt.hasPrefix("Secret") ? nil : "Answer \(calls) to: \(prompt)"
    }

    func reached(_ count: Int) async {
        if calls < count { await withCheckedContinuation { waiting.append((count, $0)) } }
    }
}

@main
enum ModelResponses {
    static func main() async throws {
        var configuration = Configuration(budget: Budget(bytes: .gigabytes(1)))
        // What has expired is kept for as long as it may be returned stale.
        configuration.expiredRetention = .seconds(86_400)
        let store = try Store(at: "answers", configuration)
        let model = Model()
        let answers = Answers(store: store, model: model, freshFor: .seconds(86_400))

        // A hundred users ask the same thing at once: one call.
        try await withThrowingTaskGroup(of: String?.self) { group in
            for _ in 0..<100 { group.addTask { try await answers.answer(to: "Why is the sky blue?") } }
            for try await reply in group { expect(reply == "Answer 1 to: Why is the sky blue?") }
        }
        print("a hundred users, \(await model.calls) call")
        await expect(model.calls == 1)

        // A refusal is remembered.
        for _ in 0..<2 { try await expect(answers.answer(to: "Secret?") == nil) }
        await expect(model.calls == 2)

        // An answer that is stale as soon as it is stored comes at once, and the model is asked again behind it.
        let news = Answers(store: store, model: model, freshFor: .zero)
        for _ in 0..<2 { try await expect(news.answer(to: "What is new?") == "Answer 3 to: What is new?") }
        await model.reached(4)
        print("a stale answer at once, and a call in the background")

        // The model is replaced: all of its answers are removed.
        let removed = try await store.remove(.tag("model:small-1"))
        print("removed \(removed) answers")
        expect(removed == 2)
        try await store.close()
    }
}
