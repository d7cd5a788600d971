// One HTTP exchange at a time, over node:http (starts in 7 ms) or undici's pool (a third less CPU per call, but 70-100 ms and 15 MB to load).
import type * as Http from 'node:http'
import type * as Https from 'node:https'
import type { HttpClient } from './http-port.ts'

export type { ExchangeSink, HttpClient } from './http-port.ts'

const SOCKETS_MAX = 128

/** `import http from 'node:http'` would read every export, and on Node 24 load the built-in undici with it (100 ms). */
export function nodeClient(url: URL): HttpClient {
  const secure = url.protocol === 'https:'
  const http = process.getBuiltinModule(secure ? 'node:https' : 'node:http') as typeof Http & typeof Https
  const agent = new http.Agent({ keepAlive: true, maxSockets: SOCKETS_MAX, scheduling: 'lifo' })
  const base = {
    host: url.hostname.replace(/^\[|\]$/g, ''),
    port: url.port || (secure ? 443 : 80),
    path: url.pathname + url.search,
    agent,
  }
  return {
    exchange(method, headers, body, sink) {
      const flat = ['host', url.host, ...headers]
      if (method === 'POST') flat.push('content-length', String(Buffer.byteLength(body)))
      let done = false
      const fail = (error: Error): void => {
        if (!done) {
          done = true
          sink.fail(error)
        }
      }
      const request = http.request({ ...base, method, headers: flat }, (response) => {
        sink.head(response.statusCode ?? 0, (name) => {
          const value = response.headers[name]
          return Array.isArray(value) ? value[0] : value
        })
        response.on('data', (chunk: Buffer) => sink.data(chunk))
        response.on('end', () => {
          if (!done) {
            done = true
            sink.end()
          }
        })
        response.on('error', fail)
        response.on('close', () => {
          if (!done) fail(new Error('the response was cut short'))
        })
      })
      request.on('error', fail)
      request.end(body)
      return () => {
        done = true
        request.destroy()
      }
    },
    close: () => agent.destroy(),
  }
}

export async function undiciClient(url: URL): Promise<HttpClient> {
  const { default: Pool } = await import('undici/lib/dispatcher/pool.js')
  const pool = new Pool(url.origin, { connections: SOCKETS_MAX, bodyTimeout: 0, headersTimeout: 0 })
  const path = url.pathname + url.search
  return {
    exchange(method, headers, body, sink) {
      let abort: ((reason: Error) => void) | undefined
      let dropped = false
      pool.dispatch(
        { path, method, headers, body: method === 'POST' ? body : null },
        {
          onRequestStart(controller) {
            abort = (reason) => controller.abort(reason)
            if (dropped) abort(new Error('dropped'))
          },
          onResponseStart(_controller, status, headers) {
            sink.head(status, (name) => {
              const value = headers[name]
              return Array.isArray(value) ? value[0] : value
            })
          },
          onResponseData(_controller, chunk) {
            sink.data(chunk)
          },
          onResponseEnd() {
            sink.end()
          },
          onResponseError(_controller, error) {
            if (!dropped) sink.fail(error)
          },
        },
      )
      return () => {
        dropped = true
        abort?.(new Error('dropped'))
      }
    },
    close: () => void pool.destroy(),
  }
}
