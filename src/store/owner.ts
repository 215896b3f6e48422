/**
 * Whose share of what is bounded something takes: an account that the upstream has accepted, or `address …`, where what
 * came from an address has not been accepted yet.
 */
export type Owner = string;

const ADDRESS = 'address ';

/** Hashes of accounts hold no space. */
export const addressOwner = (address: string): Owner => `${ADDRESS}${address}`;

export const isAddress = (owner: Owner): boolean => owner.startsWith(ADDRESS);
