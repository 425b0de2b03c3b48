/** A record while it is being made: optional members are set one by one, which costs a fraction of spreading them in. */
export type Draft<T> = { -readonly [K in keyof T]: T[K] }
