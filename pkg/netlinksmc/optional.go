// SPDX-License-Identifier: Apache-2.0

package netlinksmc

import "encoding/json"

// Optional is a value that the kernel may not have sent: an attribute that its version does not know yet. The zero
// Optional is absent, which is not the same as a value of zero. In JSON an absent value is null, or left out under
// `omitzero`.
type Optional[T any] struct {
	value T
	set   bool
}

// Some returns an Optional that holds v.
func Some[T any](v T) Optional[T] { return Optional[T]{value: v, set: true} }

// Get returns the value and whether the kernel sent one.
func (o Optional[T]) Get() (T, bool) { return o.value, o.set }

// IsSet reports whether the kernel sent a value.
func (o Optional[T]) IsSet() bool { return o.set }

// IsZero reports whether the value is absent. It makes the JSON option `omitzero` work.
func (o Optional[T]) IsZero() bool { return !o.set }

// Or returns the value, or def if there is none.
func (o Optional[T]) Or(def T) T {
	if o.set {
		return o.value
	}
	return def
}

// MarshalJSON encodes the value, or null.
func (o Optional[T]) MarshalJSON() ([]byte, error) {
	if !o.set {
		return []byte("null"), nil
	}
	return json.Marshal(o.value)
}

// UnmarshalJSON decodes a value; null is an absent one.
func (o *Optional[T]) UnmarshalJSON(data []byte) error {
	if string(data) == "null" {
		*o = Optional[T]{}
		return nil
	}
	if err := json.Unmarshal(data, &o.value); err != nil {
		return err
	}
	o.set = true
	return nil
}
