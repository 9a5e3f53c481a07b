"""The columns of FOCUS 1.2: the FinOps Open Cost and Usage Specification.

Source: "FinOps Open Cost and Usage Specification", version 1.2, ratified in May 2025,
https://focus.finops.org/focus-specification/v1-2/, chapter 3 (dataset "Cost and Usage"), and its
text at https://github.com/FinOps-Open-Cost-and-Usage-Spec/FOCUS_Spec (specification/columns and
specification/conformance), read on 2026-11-30. All 57 columns are listed, as the specification
orders them; which of them are written, and why others are not, is said with each.
"""

from dataclasses import dataclass
from typing import Literal

VERSION = "1.2"

Level = Literal["mandatory", "conditional", "recommended"]
Kind = Literal["string", "decimal", "date-time", "json"]


@dataclass(frozen=True, slots=True)
class FocusColumn:
    """One column of the specification."""

    name: str
    level: Level
    kind: Kind
    may_be_null: bool
    left_out: str = ""
    """Why it is not written; empty: it is. No mandatory one is left out."""
    allowed: tuple[str, ...] = ()
    """The values that the specification has; empty: any."""


_COMMITMENT = "nothing is bought in advance here: no commitment discounts"
_RESERVATION = "no capacity is reserved in advance"
_ONE_CURRENCY = "all prices are in the billing currency"
_NO_SKU = "clouds' price lists are read by machine type; SKUs are not kept"
_ONE_KIND = "there is one kind of it only"

_CATEGORIES = (
    "AI and Machine Learning", "Analytics", "Business Applications", "Compute", "Databases",
    "Developer Tools", "Identity", "Integration", "Internet of Things",
    "Management and Governance", "Media", "Migration", "Mobile", "Multicloud", "Networking",
    "Security", "Storage", "Web", "Other",
)  # fmt: skip


def _must(
    name: str, kind: Kind = "string", *, null: bool = False, allowed: tuple[str, ...] = ()
) -> FocusColumn:
    return FocusColumn(name, "mandatory", kind, null, "", allowed)


def _if(
    name: str, kind: Kind = "string", why_not: str = "", allowed: tuple[str, ...] = ()
) -> FocusColumn:
    return FocusColumn(name, "conditional", kind, True, why_not, allowed)


def _should(
    name: str, *, null: bool, why_not: str = "", allowed: tuple[str, ...] = ()
) -> FocusColumn:
    return FocusColumn(name, "recommended", "string", null, why_not, allowed)


COLUMNS = (
    _should("AvailabilityZone", null=True),
    _must("BilledCost", "decimal"),
    _must("BillingAccountId"),
    _must("BillingAccountName", null=True),
    _if("BillingAccountType", why_not=_ONE_KIND),
    _must("BillingCurrency", allowed=("USD",)),
    _must("BillingPeriodEnd", "date-time"),
    _must("BillingPeriodStart", "date-time"),
    _if("CapacityReservationId", why_not=_RESERVATION),
    _if("CapacityReservationStatus", why_not=_RESERVATION),
    _must("ChargeCategory", allowed=("Usage", "Purchase", "Tax", "Credit", "Adjustment")),
    _must("ChargeClass", null=True, allowed=("Correction",)),
    _must("ChargeDescription", null=True),
    _should("ChargeFrequency", null=False, allowed=("One-Time", "Recurring", "Usage-Based")),
    _must("ChargePeriodEnd", "date-time"),
    _must("ChargePeriodStart", "date-time"),
    _if("CommitmentDiscountCategory", why_not=_COMMITMENT),
    _if("CommitmentDiscountId", why_not=_COMMITMENT),
    _if("CommitmentDiscountName", why_not=_COMMITMENT),
    _if("CommitmentDiscountQuantity", "decimal", _COMMITMENT),
    _if("CommitmentDiscountStatus", why_not=_COMMITMENT),
    _if("CommitmentDiscountType", why_not=_COMMITMENT),
    _if("CommitmentDiscountUnit", why_not=_COMMITMENT),
    _if("ConsumedQuantity", "decimal"),
    _if("ConsumedUnit"),
    _must("ContractedCost", "decimal"),
    _if("ContractedUnitPrice", "decimal", "no prices are negotiated with cloudwhale"),
    _must("EffectiveCost", "decimal"),
    _should("InvoiceId", null=True, why_not="clouds write their invoices, and are not asked"),
    _must("InvoiceIssuerName"),
    _must("ListCost", "decimal"),
    _if("ListUnitPrice", "decimal", "cloudwhale publishes no price list; ListCost says the sum"),
    _if("PricingCategory", allowed=("Standard", "Dynamic", "Committed", "Other")),
    _if("PricingCurrency", why_not=_ONE_CURRENCY),
    _if("PricingCurrencyContractedUnitPrice", "decimal", _ONE_CURRENCY),
    _if("PricingCurrencyEffectiveCost", "decimal", _ONE_CURRENCY),
    _if("PricingCurrencyListUnitPrice", "decimal", _ONE_CURRENCY),
    _must("PricingQuantity", "decimal", null=True),
    _must("PricingUnit", null=True),
    _must("ProviderName"),
    _must("PublisherName"),
    _if("RegionId"),
    _if("RegionName"),
    _if("ResourceId"),
    _if("ResourceName"),
    _if("ResourceType"),
    _must("ServiceCategory", allowed=_CATEGORIES),
    _must("ServiceName"),
    _should("ServiceSubcategory", null=False),
    _if("SkuId", why_not=_NO_SKU),
    _if("SkuMeter", why_not=_NO_SKU),
    _if("SkuPriceDetails", "json", _NO_SKU),
    _if("SkuPriceId", why_not=_NO_SKU),
    _if("SubAccountId"),
    _if("SubAccountName"),
    _if("SubAccountType", why_not=_ONE_KIND),
    _if("Tags", "json"),
)

OWN = (
    "x_Run", "x_User", "x_Job", "x_Family", "x_Market", "x_MachineType", "x_GpuModel",
    "x_UsefulCost", "x_BootCost", "x_IdleCost", "x_LostCost", "x_FailedCost", "x_OverCost",
    "x_MovedCost",
)  # fmt: skip
"""Columns of cloudwhale, behind the others, with the prefix that the specification asks for."""

WRITTEN = (*(column.name for column in COLUMNS if not column.left_out), *OWN)
"""The head of what is written."""
