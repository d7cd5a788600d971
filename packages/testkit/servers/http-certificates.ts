// Certificates for TLS tests, made in memory: an authority, and what it signs. X.509 v3 (RFC 5280) with ECDSA, in DER by hand, since Node reads
// certificates but makes none.
import { generateKeyPairSync, type KeyObject, randomBytes, sign } from 'node:crypto'

export interface CertificateOptions {
  /** Names and IPv4 addresses that it is for. Default `localhost` and `127.0.0.1`. */
  readonly names?: readonly string[]
  /** Default: an hour ago and in a day. */
  readonly notBefore?: Date
  readonly notAfter?: Date
}

export interface Certificate {
  /** PEM. */
  readonly cert: string
  /** PEM. */
  readonly key: string
}

export interface Authority {
  /** PEM. */
  readonly cert: string
  issue(options?: CertificateOptions): Certificate
}

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS

/** A certificate authority of its own, which nobody trusts yet. */
export function createAuthority(name = 'Convoke test authority'): Authority {
  const own = pair()
  const cert = build({
    subject: name,
    issuer: name,
    publicKey: own.publicKey,
    signer: own.privateKey,
    extensions: [basicConstraints(true)],
  })
  return {
    cert,
    issue: ({ names = ['localhost', '127.0.0.1'], ...validity } = {}) => {
      const { publicKey, privateKey } = pair()
      const extensions = [basicConstraints(false), alternativeNames(names)]
      const issued = build({
        subject: names[0] ?? 'nobody',
        issuer: name,
        publicKey,
        signer: own.privateKey,
        extensions,
        ...validity,
      })
      return { cert: issued, key: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString() }
    },
  }
}

function pair(): { publicKey: KeyObject; privateKey: KeyObject } {
  return generateKeyPairSync('ec', { namedCurve: 'prime256v1' })
}

interface Content extends Pick<CertificateOptions, 'notBefore' | 'notAfter'> {
  subject: string
  issuer: string
  publicKey: KeyObject
  signer: KeyObject
  extensions: Buffer[]
}

function build({ subject, issuer, publicKey, signer, extensions, notBefore, notAfter }: Content): string {
  const algorithm = sequence(oid('1.2.840.10045.4.3.2')) // ecdsa-with-SHA256
  const from = notBefore ?? new Date(Date.now() - HOUR_MS)
  const until = notAfter ?? new Date(Date.now() + DAY_MS)
  const body = sequence(
    tlv(0xa0, tlv(0x02, Buffer.from([2]))),
    tlv(0x02, Buffer.concat([Buffer.from([0x01]), randomBytes(15)])),
    algorithm,
    commonName(issuer),
    sequence(time(from), time(until)),
    commonName(subject),
    publicKey.export({ type: 'spki', format: 'der' }),
    tlv(0xa3, sequence(...extensions)),
  )
  const der = sequence(body, algorithm, tlv(0x03, Buffer.concat([Buffer.from([0]), sign('sha256', body, signer)])))
  const lines = der.toString('base64').match(/.{1,64}/g) ?? []
  return `-----BEGIN CERTIFICATE-----\n${lines.join('\n')}\n-----END CERTIFICATE-----\n`
}

function basicConstraints(isAuthority: boolean): Buffer {
  return extension('2.5.29.19', sequence(...(isAuthority ? [tlv(0x01, Buffer.from([0xff]))] : [])))
}

function alternativeNames(names: readonly string[]): Buffer {
  return extension(
    '2.5.29.17',
    sequence(
      ...names.map((name) =>
        /^[\d.]+$/.test(name) ? tlv(0x87, Buffer.from(name.split('.').map(Number))) : tlv(0x82, Buffer.from(name)),
      ),
    ),
  )
}

function extension(id: string, value: Buffer): Buffer {
  return sequence(oid(id), tlv(0x04, value))
}

function commonName(name: string): Buffer {
  return sequence(tlv(0x31, sequence(oid('2.5.4.3'), tlv(0x0c, Buffer.from(name)))))
}

function time(date: Date): Buffer {
  return tlv(0x18, Buffer.from(`${date.toISOString().slice(0, 19).replace(/[-T:]/g, '')}Z`))
}

function oid(text: string): Buffer {
  const [first = 0, second = 0, ...rest] = text.split('.').map(Number)
  return tlv(0x06, Buffer.from([first * 40 + second, ...rest.flatMap(base128)]))
}

function base128(value: number): number[] {
  const bytes = [value & 0x7f]
  for (let left = value >> 7; left > 0; left >>= 7) bytes.unshift((left & 0x7f) | 0x80)
  return bytes
}

function sequence(...parts: Buffer[]): Buffer {
  return tlv(0x30, Buffer.concat(parts))
}

function tlv(tag: number, content: Buffer): Buffer {
  const { length } = content
  const header =
    length < 0x80 ? [tag, length] : length < 0x100 ? [tag, 0x81, length] : [tag, 0x82, length >> 8, length & 0xff]
  return Buffer.concat([Buffer.from(header), content])
}
