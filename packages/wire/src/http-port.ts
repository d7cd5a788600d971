// What the HTTP channel needs of an HTTP implementation.

export interface ExchangeSink {
  head(status: number, header: (name: string) => string | undefined): void
  data(chunk: Buffer): void
  end(): void
  fail(error: Error): void
}

export interface HttpClient {
  /** `headers` is flat: name, value, name, value. Returns how to drop the exchange. */
  exchange(method: string, headers: string[], body: string, sink: ExchangeSink): () => void
  close(): void
}
