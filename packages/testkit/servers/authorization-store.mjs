// Where the authorization server keeps what it issued: in memory, and to be searched by account.

/** Hands out the adapters that `oidc-provider` asks for, one a kind of record, all on one shelf. */
export class AuthorizationStore {
  constructor() {
    this.records = new Map()
  }

  adapterFor(kind) {
    return new Adapter(this.records, kind)
  }

  /** Ids of the grants of an account. */
  grantsOf(account) {
    return [...this.records]
      .filter(([key, { payload }]) => key.startsWith('Grant:') && payload.accountId === account)
      .map(([key]) => key.slice('Grant:'.length))
  }

  /** Removes a grant and all that was issued by it. */
  removeGrant(id) {
    this.records.delete(`Grant:${id}`)
    for (const [key, { payload }] of this.records) if (payload.grantId === id) this.records.delete(key)
  }
}

class Adapter {
  constructor(records, kind) {
    this.records = records
    this.kind = kind
  }

  async upsert(id, payload, expiresInSeconds) {
    const expiresAtMs =
      expiresInSeconds === undefined ? Number.POSITIVE_INFINITY : Date.now() + expiresInSeconds * 1_000
    this.records.set(`${this.kind}:${id}`, { payload, expiresAtMs })
  }

  async find(id) {
    return this.live(`${this.kind}:${id}`)
  }

  async findByUid(uid) {
    return this.findWhere((payload) => payload.uid === uid)
  }

  async findByUserCode(userCode) {
    return this.findWhere((payload) => payload.userCode === userCode)
  }

  async consume(id) {
    const record = this.records.get(`${this.kind}:${id}`)
    if (record !== undefined) record.payload.consumed = Math.floor(Date.now() / 1_000)
  }

  async destroy(id) {
    this.records.delete(`${this.kind}:${id}`)
  }

  async revokeByGrantId(grantId) {
    for (const [key, { payload }] of this.records)
      if (key.startsWith(`${this.kind}:`) && payload.grantId === grantId) this.records.delete(key)
  }

  live(key) {
    const record = this.records.get(key)
    if (record === undefined) return undefined
    if (record.expiresAtMs > Date.now()) return record.payload
    this.records.delete(key)
    return undefined
  }

  findWhere(isWanted) {
    for (const [key, { payload }] of this.records)
      if (key.startsWith(`${this.kind}:`) && isWanted(payload)) return this.live(key)
    return undefined
  }
}
